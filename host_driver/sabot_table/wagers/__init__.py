"""The wagers: for each, which lines of a paytable a hand meets, the highest first.

A paytable takes the first of these lines that it lists; a hand that meets none of its lines loses. So one
reading of the text serves every lettered table, and nothing is ever paid on two lines.
"""
