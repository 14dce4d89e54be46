"""The Connect edge: plans of a client as messages, seen when they are sent."""
