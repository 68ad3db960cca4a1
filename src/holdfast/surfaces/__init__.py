"""The APIs of older libraries, on any store: change the import and keep the program."""
