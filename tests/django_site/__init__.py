"""A small site, for the tests of the Django integration."""
