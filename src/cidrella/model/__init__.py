"""The objects of the API as typed structs: decoding, validation, conversion for the core, and the CRDs made from them.

No I/O. Reading files and talking HTTP is for others; here plain data becomes objects, or a list of what is wrong.
"""
