"""Stand-ins for other people's controllers, so that tenant clusters come to life on one machine."""
