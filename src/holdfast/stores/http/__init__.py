"""The store behind a Holdfast server: the wire it speaks, and the two faces of its client."""
