"""Programs that run in the guest, and code that prepares it."""
