"""Boot logs: are the lines of a boot familiar, expected, and in the expected order?"""
