"""The async side of localqueue; the sync twins are generated."""
