"""The scheduler: writes records to their topics when they are due, each time once."""
