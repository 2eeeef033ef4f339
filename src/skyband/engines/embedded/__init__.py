"""The embedded engine: it runs queries over Arrow data in this process."""
