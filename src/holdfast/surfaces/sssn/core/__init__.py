"""What channels are made of, under the path that programs import it from."""
