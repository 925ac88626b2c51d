"""Status pages of a worker: a view folded from the topics, pages made of it, Faust's web server."""
