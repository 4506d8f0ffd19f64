-- Decides each request of HAProxy by Portcullis: `http-request lua.portcullis http://127.0.0.1:8788/-/decide`. Sets
-- txn.portcullis only for a permitted request: HAProxy continues after an error of Lua, so the configuration must refuse
-- every request without it. A refusal is returned as Portcullis has written it.

-- Headers of this hop, of the body, and those that describe the request.
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

-- Headers of a response that say nothing about the caller. All others are for the API, and replace those of the client.
local OF_RESPONSE = {
  ["cache-control"] = true, ["connection"] = true, ["content-length"] = true, ["content-type"] = true, ["date"] = true,
  ["keep-alive"] = true, ["ratelimit"] = true, ["ratelimit-policy"] = true, ["server-timing"] = true,
  ["set-cookie"] = true, ["transfer-encoding"] = true, ["dpop-nonce"] = true, ["x-portcullis-status"] = true,
  ["x-portcullis-undecided"] = true,
}

local OUTAGE = '{"type":"about:blank","title":"Service unavailable","status":503}'
local PROBLEM = { ["content-type"] = { "application/problem+json" }, ["retry-after"] = { "5" } }

local function refuse(txn, status, headers, body)
  local reply = txn:reply({ status = status })
  for _, name in ipairs(PASSED_ON) do
    for _, value in pairs(headers[name] or {}) do reply:add_header(name, value) end
  end
  reply:set_body(body or "")
  txn:done(reply)
end

local function authorization_request(txn)
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
  headers["x-original-url"] = { scheme .. "://" .. host .. (txn.f:pathq() or "") }
  return headers
end

-- An error of the client of HTTP, such as a request that is too large for it, is a response that did not come.
local function authorize(txn, url)
  local is_sent, response = pcall(function()
    return core.httpclient():get({ url = url, headers = authorization_request(txn), timeout = 10000 })
  end)
  return is_sent and response or { status = 0, headers = {} }
end

core.register_action("portcullis", { "http-req" }, function(txn, url)
  local response = authorize(txn, url)
  local status, headers = response.status or 0, response.headers or {}
  for name in pairs(txn.http:req_get_headers()) do
    if name:find("^x%-auth%-") then txn.http:req_del_header(name) end
  end
  if status == 200 and headers["x-portcullis-status"] then
    for name, values in pairs(headers) do
      if not OF_RESPONSE[name] then
        txn.http:req_del_header(name)
        if values[0] ~= "" then txn.http:req_set_header(name, values[0]) end
      end
    end
    local cookie = (headers["set-cookie"] or {})[0]
    if cookie then txn:set_var("txn.portcullis_cookie", cookie) end
    txn:set_var("txn.portcullis", true)
    return
  end
  if status < 300 then return refuse(txn, 503, PROBLEM, OUTAGE) end
  local decided = (headers["x-portcullis-status"] or {})[0]
  refuse(txn, tonumber(decided) or status, headers, response.body)
end, 1)
