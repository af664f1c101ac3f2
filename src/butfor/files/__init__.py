"""Files and text from outside: read under guard, written whole or not at all."""
