"""How much of the server one caller may take."""
