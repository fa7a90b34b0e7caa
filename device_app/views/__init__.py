"""What the device tells its pages: frozen values, one module a page."""
