"""From the arguments of a call to the command that a store is sent."""
