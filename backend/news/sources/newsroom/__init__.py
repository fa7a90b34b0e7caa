"""Ownfeed's generated newspaper: an invented world, written up by desks; see README.md."""
