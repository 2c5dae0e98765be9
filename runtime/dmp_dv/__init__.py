"""DV driver interface (dmp_dv_*)."""
