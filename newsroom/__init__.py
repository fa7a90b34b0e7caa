"""A generated newspaper: an invented world, reported in sections; see README.md."""
