"""The HTTP server: processes, limits, uploads, addresses, logs."""
