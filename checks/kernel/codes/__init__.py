"""The catalogues: what each code means, and its severity and action when its line is seen alone."""
