"""The torture campaign: faults, damage and hostile input, seeded and replayable. `make torture` runs it."""
