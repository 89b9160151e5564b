"""The incident branch: paths, file formats, digests, and whether a repair record may be carried out. Pure.

Bot and reconciler both use this package; nothing else knows the names or the contents of the files.
"""
