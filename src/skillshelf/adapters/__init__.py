"""Sessions to what agent frameworks expect: thin, one module for each, nothing imported before it is asked for."""
