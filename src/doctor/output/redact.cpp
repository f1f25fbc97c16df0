#include "doctor/output/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

namespace headroom::doctor {
namespace {

bool alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Characters of words that are redacted as a whole.
bool word_character(char c) {
  return alnum(c) || (static_cast<unsigned char>(c) & 0x80u) ||
         std::string_view("._-/@:+~\\%=#?&").find(c) != std::string_view::npos;
}

bool known_token(std::string_view word) {
  constexpr std::array<std::string_view, 18> prefixes{"hf_",    "sk-",   "ghp_", "gho_",      "ghs_",   "github_pat_",
                                                      "glpat-", "AKIA",  "ASIA", "xoxb-",     "xoxp-",  "eyJ",
                                                      "AIza",   "pypi-", "npm_", "dckr_pat_", "nvapi-", "wandb_"};
  for (const std::string_view prefix : prefixes)
    if (word.starts_with(prefix) && word.size() >= prefix.size() + 8) return true;
  return false;
}

// A long mix of letters and digits, like a key or a hash.
bool looks_secret(std::string_view word) {
  if (known_token(word)) return true;
  size_t run = 0, digits = 0, letters = 0;
  for (const char c : word) {
    if (!alnum(c) && c != '_' && c != '-' && c != '+') {
      run = digits = letters = 0;
      continue;
    }
    ++run;
    digits += digit(c);
    letters += std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (run >= 32 && digits >= 4 && letters >= 4) return true;
  }
  return false;
}

bool is_address(std::string_view word) {
  int dots = 0, group = 0;
  for (const char c : word.substr(0, word.find(':'))) {
    if (c == '.') {
      if (group == 0 || group > 3) return false;
      ++dots;
      group = 0;
    } else if (digit(c)) {
      ++group;
    } else {
      return false;
    }
  }
  return dots == 3 && group >= 1 && group <= 3;
}

// node17, gpu-03, dgx2, login1, hostname.cluster.edu
bool is_host(std::string_view word) {
  const std::string name = lower(word.substr(0, word.find(':')));
  for (const std::string_view stem :
       {"node", "gpu-", "gpunode", "dgx", "login", "compute", "ip-", "nid", "cn", "worker-"}) {
    if (!name.starts_with(stem) || name.size() == stem.size()) continue;
    const std::string rest = name.substr(stem.size());
    if (std::any_of(rest.begin(), rest.end(), digit) &&
        std::all_of(rest.begin(), rest.end(), [](char c) { return alnum(c) || c == '-' || c == '.'; }) &&
        digit(rest.back()))
      return true;
  }
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return false;
  const std::string end = name.substr(dot + 1);
  constexpr std::array<std::string_view, 24> ends{
      "com", "org", "net", "edu", "gov", "mil", "io", "ai",    "dev",      "de",      "uk",  "fr",
      "ch",  "eu",  "jp",  "cn",  "ca",  "se",  "it", "local", "internal", "cluster", "lan", "localdomain"};
  return std::find(ends.begin(), ends.end(), end) != ends.end();
}

std::string redacted_path(std::string_view word) {
  for (const std::string_view mark : {"site-packages/", "dist-packages/"})
    if (const size_t at = word.rfind(mark); at != std::string_view::npos)
      return "<path>/" + std::string(word.substr(at));
  // A line number after the path is kept.
  const size_t colon = word.rfind(':');
  if (colon != std::string_view::npos && colon + 1 < word.size() &&
      std::all_of(word.begin() + static_cast<std::ptrdiff_t>(colon) + 1, word.end(), digit))
    return "<path>" + std::string(word.substr(colon));
  return "<path>";
}

bool is_path(std::string_view word) {
  if (word.starts_with("/") || word.starts_with("~") || word.starts_with("./") || word.starts_with("../"))
    return word.size() > 1 && word.find_first_of("/") != std::string_view::npos &&
           std::any_of(word.begin(), word.end(),
                       [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  if (word.find('\\') != std::string_view::npos && word.size() > 2 && word[1] == ':') return true;
  if (word.find("\\\\") == 0) return true;
  const auto slashes = std::count(word.begin(), word.end(), '/');
  if (slashes >= 2)
    return std::any_of(word.begin(), word.end(),
                       [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  if (slashes == 1) {
    const size_t dot = word.rfind('.');
    for (const std::string_view end :
         {".py", ".yaml", ".yml", ".json", ".sh", ".txt", ".log", ".pt", ".bin", ".safetensors"})
      if (dot != std::string_view::npos && word.substr(dot, end.size()) == end) return true;
  }
  return false;
}

bool secret_name(std::string_view name) {
  const std::string small = lower(name);
  for (const std::string_view part : {"token", "secret", "password", "passwd", "api_key", "apikey", "credential"})
    if (small.find(part) != std::string::npos && small != "tokens" && small.find("tokens") == std::string::npos &&
        small.find("tokenizer") == std::string::npos)
      return true;
  return false;
}

bool person_name(std::string_view name) {
  const std::string small = lower(name);
  return small == "user" || small == "username" || small == "logname" || small == "login" || small == "account" ||
         small == "owner" || small == "--account";
}

bool host_name(std::string_view name) {
  const std::string small = lower(name);
  return small == "host" || small == "hostname" || small == "nodelist" || small == "node" || small == "nodename" ||
         small == "server" || small.ends_with("_nodelist") || small == "master_addr";
}

// The user names in paths of home directories.
std::set<std::string> users_of(std::string_view text) {
  std::set<std::string> users;
  for (const std::string_view home :
       {"/home/", "/Users/", "/users/", "\\Users\\", "/scratch/", "/fsx/", "/export/home/"}) {
    for (size_t at = text.find(home); at != std::string_view::npos; at = text.find(home, at + 1)) {
      size_t end = at + home.size();
      while (end < text.size() && (alnum(text[end]) || text[end] == '_' || text[end] == '-' || text[end] == '.')) ++end;
      const std::string name(text.substr(at + home.size(), end - at - home.size()));
      if (name.size() >= 2 && name != "root" && name != "user" && name != "Public") users.insert(name);
    }
  }
  return users;
}

class Redactor {
 public:
  Redactor(std::string_view text, const std::vector<std::string>& keep)
      : text_(text), keep_(keep.begin(), keep.end()), users_(users_of(text)) {}

  std::string run() {
    size_t at = 0;
    while (at < text_.size()) {
      size_t end = at;
      while (end < text_.size() && word_character(text_[end])) ++end;
      if (end == at) {
        out_ += text_[at++];
        continue;
      }
      word(text_.substr(at, end - at));
      at = end;
    }
    return std::move(out_);
  }

 private:
  void word(std::string_view word) {
    const std::string was = std::exchange(before_, std::string(word));
    if (keep_.count(std::string(word))) return void(out_ += word);
    if (const size_t equals = word.find('=');
        equals != std::string_view::npos && equals > 0 && word.find("://") > equals) {
      const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
      out_ += name;
      out_ += '=';
      if (!value.empty()) out_ += checked_word(name, value);
      return;
    }
    // A name after "user:", after "kernel:" or "on node".
    std::string name = was;
    while (!name.empty() && (name.back() == ':' || name.back() == '=')) name.pop_back();
    const bool labelled = was != name || person_name(name);
    size_t end = word.size();
    while (end > 0 && (word[end - 1] == ':' || word[end - 1] == '.')) --end;
    out_ += checked_word(labelled ? name : std::string_view(), word.substr(0, end));
    out_ += word.substr(end);
  }

  std::string checked_word(std::string_view name, std::string_view word) const {
    if (keep_.count(std::string(word)) || word.empty()) return std::string(word);
    if (secret_name(name)) return "<secret>";
    if (person_name(name)) return "<user>";
    if (host_name(name) && word.find_first_not_of("0123456789.") != std::string_view::npos) return "<host>";
    if (const size_t scheme = word.find("://"); scheme != std::string_view::npos) return "<url>";
    if (const size_t sign = word.find('@'); sign != std::string_view::npos && sign > 0 && sign + 1 < word.size())
      return word.find('.', sign) != std::string_view::npos ? "<email>" : "<user>@<host>";
    if (looks_secret(word)) return "<secret>";
    if (is_path(word)) return redacted_path(word);
    if (is_address(word) || is_host(word)) return "<host>";
    return without_users(word);
  }

  std::string without_users(std::string_view word) const {
    std::string out(word);
    for (const std::string& user : users_)
      for (size_t at = out.find(user); at != std::string::npos; at = out.find(user, at + 6)) {
        const bool begins = at == 0 || !alnum(out[at - 1]);
        const bool ends = at + user.size() >= out.size() || !alnum(out[at + user.size()]);
        if (begins && ends) out.replace(at, user.size(), "<user>");
      }
    return out;
  }

  std::string_view text_;
  std::set<std::string> keep_, users_;
  std::string out_, before_;
};

// Removes the host name that the kernel's log writes before "kernel:" in each line.
std::string without_log_hosts(std::string text) {
  for (size_t at = text.find(" kernel:"); at != std::string::npos; at = text.find(" kernel:", at + 1)) {
    size_t begin = at;
    while (begin > 0 && !std::isspace(static_cast<unsigned char>(text[begin - 1]))) --begin;
    if (begin == at || text[at - 1] == ']' || text[begin] == '<') continue;
    text.replace(begin, at - begin, "<host>");
    at = begin;
  }
  return text;
}

}  // namespace

std::string redact(std::string_view text, const std::vector<std::string>& keep) {
  return without_log_hosts(Redactor(text, keep).run());
}

}  // namespace headroom::doctor
