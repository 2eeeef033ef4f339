"""The embedded engine: queries over Arrow data, in this process. A module for each problem."""
