Here: no
