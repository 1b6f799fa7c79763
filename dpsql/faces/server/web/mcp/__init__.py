"""Language-model agents as analysts: the Model Context Protocol over HTTP."""
