"""From scratch: optima and level sets of which nothing is known but the table, against other
libraries."""
