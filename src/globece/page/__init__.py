"""The page: one result as plain data and typed arrays, drawn by one bundle as a report, live and in a notebook."""
