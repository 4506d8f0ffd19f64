--- Returns the issuer that vouches for a party of a principal. See `vouchingIssuer`.
local function vouching_issuer(part, by)
  return by == 'client' and part.tokenIssuer or part.issuer
end
