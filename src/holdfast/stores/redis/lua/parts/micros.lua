--- A duration in microseconds, rounded as the clients do.

local function micros(seconds)
  local exact = seconds * 1000000
  local whole = math.floor(exact)
  return (exact - whole > 0.5 or (exact - whole == 0.5 and whole % 2 == 1)) and whole + 1 or whole
end
