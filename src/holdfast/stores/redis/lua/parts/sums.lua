--- Sums of JSON numbers as text: whole ones of any 64 bits exactly, others as doubles, written as the clients' JSON encoder writes them.

local sum_of

do -- Lua allows 200 local names at a time, and only the sum is needed elsewhere.
  local LIMB = 1e7 -- three limbs of seven digits are more than 64 bits have

  --- Whether a JSON number is a whole one.
  local function is_whole(number)
    return string.match(number, "^%-?%d+$") ~= nil
  end

  --- A whole number as limbs of seven digits, the lowest first, each with the sign of the number.
  local function limbs_of(number)
    local sign, all = string.match(number, "^(%-?)(%d+)$")
    all = string.rep("0", 21 - #all) .. all
    local factor = sign == "-" and -1 or 1
    local limbs = {}
    for i = 1, 3 do
      limbs[i] = factor * tonumber(string.sub(all, 22 - 7 * i, 28 - 7 * i))
    end
    return limbs
  end

  --- The limbs with every one between 0 and LIMB, and what is left over: -1 where the number is negative.
  local function carried(limbs)
    local result, carry = {}, 0
    for i = 1, 3 do
      local limb = limbs[i] + carry
      carry = math.floor(limb / LIMB)
      result[i] = limb - carry * LIMB
    end
    return result, carry
  end

  --- The sum of two whole numbers, nil where it leaves 64 bits.
  local function sum_of_wholes(one, other)
    if #one > 21 or #other > 21 then
      return nil
    end
    local a, b = limbs_of(one), limbs_of(other)
    local sum, sign, most = { a[1] + b[1], a[2] + b[2], a[3] + b[3] }, "", "18446744073709551615"
    local limbs, left_over = carried(sum)
    if left_over < 0 then
      sign, most = "-", "9223372036854775808"
      limbs, left_over = carried({ -sum[1], -sum[2], -sum[3] })
    end
    local magnitude = string.gsub(string.format("%07d%07d%07d", limbs[3], limbs[2], limbs[1]), "^0+(%d)", "%1")
    if left_over ~= 0 or #magnitude > #most or (#magnitude == #most and magnitude > most) then
      return nil
    end
    return sign .. magnitude
  end

  --- A double in the fewest digits that give it back.
  local function text_of_double(number)
    local shortest
    for precision = 15, 17 do
      shortest = string.format("%." .. precision .. "g", number)
      if tonumber(shortest) == number then
        break
      end
    end
    local sign, whole, fraction, exponent = string.match(shortest, "^(%-?)(%d+)%.?(%d*)e?([+-]?%d*)$")
    local all = whole .. fraction
    local point = #whole + (tonumber(exponent) or 0) -- how many digits stand before the decimal point
    local leading = #string.match(all, "^0*")
    all, point = string.sub(all, leading + 1), point - leading
    all = string.gsub(all, "0+$", "")
    if all == "" then
      return sign .. "0.0"
    elseif point > 16 or point < -4 then
      local rest = string.sub(all, 2)
      return sign .. string.sub(all, 1, 1) .. (rest ~= "" and "." .. rest or "") .. "e" .. (point - 1)
    elseif point <= 0 then
      return sign .. "0." .. string.rep("0", -point) .. all
    elseif #all <= point then
      return sign .. all .. string.rep("0", point - #all) .. ".0"
    end
    return sign .. string.sub(all, 1, point) .. "." .. string.sub(all, point + 1)
  end

  --- The sum of two JSON numbers; nil where it leaves the range of numbers.
  function sum_of(one, other)
    if is_whole(one) and is_whole(other) then
      return sum_of_wholes(one, other)
    end
    local sum = tonumber(one) + tonumber(other)
    if sum ~= sum or sum == math.huge or sum == -math.huge then
      return nil
    end
    return text_of_double(sum)
  end
end
