"""A generated newspaper: an invented world, written up in sections; see README.md."""
