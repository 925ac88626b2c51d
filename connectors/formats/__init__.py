"""Forms of records that other systems wrote. Pure."""
