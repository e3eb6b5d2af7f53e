"""The page of share groups: a cluster as its principals may see it."""
