"""The BM1684X's commands as typed functions; nothing else writes fields of commands."""
