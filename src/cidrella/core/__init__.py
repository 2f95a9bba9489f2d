"""The pure core: addresses, blocks, pools, selectors, order, decisions.

No I/O, no clock, no random numbers, no logging, and nothing imported but the standard library.
"""
