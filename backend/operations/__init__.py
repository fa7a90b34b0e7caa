"""An operator's tasks: run several processes, open rounds, make and restore backups."""
