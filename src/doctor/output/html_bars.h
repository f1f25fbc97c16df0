// Bars that show what fills a memory, as inline SVG.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/output/report.h"

namespace headroom::doctor {

// Escapes text for HTML and drops control characters.
std::string escaped(std::string_view text);

// The terms that fill the device by the message, with the request last. Empty without figures.
std::vector<Term> terms_of_message(const Case& incident);

// All bars of a page, with a common scale, one colour per term, and a line at the limit.
class Bars {
 public:
  explicit Bars(const Report& report);

  // One bar: a rectangle per term, a line at the limit.
  std::string draw(const std::vector<Term>& terms, std::string_view label) const;
  std::string legend() const;

 private:
  void add(const std::vector<Term>& terms);
  const char* colour(const std::string& name) const;

  std::map<std::string, size_t> order_;
  int64_t limit_ = 0, widest_ = 0;
};

}  // namespace headroom::doctor
