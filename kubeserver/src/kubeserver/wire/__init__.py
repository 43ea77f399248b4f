"""What goes over the wire: HTTP at the edge, bodies in and out, refusals, and the texts of Go that clients know."""
