"""Active checks of one host: does each device multiply right, keep what it is given, and keep pace with its kind?"""
