"""The APIs of older libraries, on any store: change the import, and a program goes on."""
