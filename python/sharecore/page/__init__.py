"""The page of share groups: what browsers see of a cluster, as its principals may."""
