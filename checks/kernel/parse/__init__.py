"""Lines of every driver but NVIDIA's: one module a part of the host, each a table of wordings (section 3.7).

Wordings differ between kernels; a table holds the old and the new one. A driver's word must begin the text.
"""
