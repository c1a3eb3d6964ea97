"""What pages of ours share: one file of HTML with its style and scripts in it.

A page loads nothing, and takes what comes from outside as text alone: its policy lets the scripts
run that are in it, by their hashes, and has the browser refuse any text as markup.
"""
