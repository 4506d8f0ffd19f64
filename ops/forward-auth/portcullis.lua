-- Asks Portcullis about each request of HAProxy: `http-request lua.portcullis http://127.0.0.1:8788/-/decide`.
-- A refusal is returned as Portcullis has written it. Without an answer, the request is refused with 503.

-- Headers of this hop, of the body, and those that state the request.
local LEFT_OUT = {
  ["connection"] = true, ["keep-alive"] = true, ["proxy-connection"] = true, ["te"] = true, ["trailer"] = true,
  ["upgrade"] = true, ["expect"] = true, ["transfer-encoding"] = true, ["content-length"] = true,
  ["x-original-method"] = true, ["x-original-url"] = true, ["x-forwarded-for"] = true,
}

-- Headers of a refusal that the client gets.
local PASSED_ON = {
  "content-type", "cache-control", "www-authenticate", "retry-after", "ratelimit", "ratelimit-policy", "x-request-id",
  "location", "set-cookie", "dpop-nonce",
}

local OUTAGE = '{"type":"about:blank","title":"Service unavailable","status":503}'

local function refuse(txn, status, headers, body)
  local reply = txn:reply({ status = status })
  for _, name in ipairs(PASSED_ON) do
    for _, value in pairs(headers[name] or {}) do reply:add_header(name, value) end
  end
  reply:set_body(body or "")
  txn:done(reply)
end

core.register_action("portcullis", { "http-req" }, function(txn, url)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not LEFT_OUT[name] then
      headers[name] = {}
      for at, value in pairs(values) do headers[name][at + 1] = value end
    end
  end
  local scheme = txn.f:ssl_fc() == 1 and "https" or "http"
  local host = txn.f:req_fhdr("host") or ""
  headers["x-forwarded-for"] = { txn.f:src() }
  headers["x-original-method"] = { txn.f:method() }
  headers["x-original-url"] = { scheme .. "://" .. host .. txn.f:pathq() }

  local answer = core.httpclient():get({ url = url, headers = headers, timeout = 10000 })
  local status = answer and answer.status or 0
  if status == 200 and answer.headers["x-portcullis-status"] then
    for name in pairs(txn.http:req_get_headers()) do
      if name:find("^x%-auth%-") then txn.http:req_del_header(name) end
    end
    for name, values in pairs(answer.headers) do
      if name:find("^x%-auth%-") and values[0] ~= "" then txn.http:req_set_header(name, values[0]) end
    end
    txn.http:req_set_header("x-request-id", (answer.headers["x-request-id"] or {})[0] or "")
    -- The token is for the gateway only.
    txn.http:req_del_header("authorization")
    return
  end
  if status < 300 then
    return refuse(txn, 503, { ["content-type"] = { "application/problem+json" }, ["retry-after"] = { "5" } }, OUTAGE)
  end
  local decided = (answer.headers["x-portcullis-status"] or {})[0]
  refuse(txn, tonumber(decided) or status, answer.headers, answer.body)
end, 1)
