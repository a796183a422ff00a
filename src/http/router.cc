#include "http/router.h"

#include <fmt/format.h>

#include <optional>

namespace weir::http {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

bool is_parameter(std::string_view part) { return part.size() > 2 && part.front() == '{' && part.back() == '}'; }
bool is_rest(std::string_view part) { return is_parameter(part) && part.ends_with("...}"); }

/// Compares a route with the decoded parts of a path. A score orders matches: literals beat parameters from the left.
std::optional<std::string> match_parts(const Router::Route& route, const std::vector<std::string>& parts,
                                       std::map<std::string, std::string>& params) {
  std::string score;
  for (std::size_t i = 0; i < route.parts.size(); ++i) {
    const std::string& part = route.parts[i];
    if (is_rest(part)) {
      std::string rest;
      for (std::size_t j = i; j < parts.size(); ++j) rest += (j > i ? "/" : "") + parts[j];
      params[part.substr(1, part.size() - 5)] = std::move(rest);
      return score + '0';
    }
    if (i >= parts.size()) return std::nullopt;
    if (is_parameter(part)) {
      if (parts[i].empty()) return std::nullopt;
      params[part.substr(1, part.size() - 2)] = parts[i];
      score += '1';
    } else if (part == parts[i]) {
      score += '2';
    } else {
      return std::nullopt;
    }
  }
  if (route.parts.size() != parts.size()) return std::nullopt;
  return score;
}

}  // namespace

Result<std::string> url_decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out += ' ';
    } else if (text[i] == '%') {
      const auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
      const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
      if (!high || !low || (*high == 0 && *low == 0)) {
        return fail(ErrorKind::kInvalid, fmt::format("the address has a bad escape at \"{}\"", text.substr(i, 3)));
      }
      out += static_cast<char>(*high * 16 + *low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

void Router::add(std::string method, std::string_view pattern, Handler handler, StreamHandler stream) {
  Route route{std::move(method), {}, std::move(handler), std::move(stream)};
  for (const auto part : split(pattern.substr(1), '/')) route.parts.emplace_back(part);
  routes_.push_back(std::move(route));
}

Router::Match Router::find(std::string_view method, std::string_view target) const {
  Match match;
  const auto refuse = [&](int status, std::string complaint) {
    match.route = nullptr;
    match.status = status;
    match.complaint = std::move(complaint);
    return std::move(match);
  };
  const auto question = target.find('?');
  const std::string_view path = target.substr(0, question);
  if (!path.starts_with('/')) return refuse(400, "the address must be a path that begins with /");
  std::vector<std::string> parts;
  for (const auto part : split(path.substr(1), '/')) {
    auto decoded = url_decode(part, false);
    if (!decoded) return refuse(400, decoded.error().message);
    match.request.path += "/" + *decoded;
    parts.push_back(std::move(*decoded));
  }
  if (question != std::string_view::npos) {
    for (const auto pair : split(target.substr(question + 1), '&')) {
      if (pair.empty()) continue;
      const auto equals = pair.find('=');
      auto name = url_decode(pair.substr(0, equals), true);
      auto value = url_decode(equals == std::string_view::npos ? "" : pair.substr(equals + 1), true);
      if (!name) return refuse(400, name.error().message);
      if (!value) return refuse(400, value.error().message);
      match.request.query[std::move(*name)] = std::move(*value);
    }
  }
  match.request.method = method;

  std::string best;
  for (const Route& route : routes_) {
    std::map<std::string, std::string> params;
    const auto score = match_parts(route, parts, params);
    if (!score) continue;
    if (route.method != method && !(route.method == "GET" && method == "HEAD")) {
      match.allow += (match.allow.empty() ? "" : ", ") + route.method;
      continue;
    }
    if (match.route == nullptr || *score > best) {
      match.route = &route;
      match.request.params = std::move(params);
      best = *score;
    }
  }
  if (match.route == nullptr) {
    if (match.allow.empty()) return refuse(404, fmt::format("nothing is served at {}", match.request.path));
    return refuse(405, fmt::format("{} does not take {}; it takes {}", match.request.path, method, match.allow));
  }
  return match;
}

}  // namespace weir::http
