// A chart as inline SVG that stretches with the page. Its labels are text outside the SVG, so that they stay readable
// on a phone.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace headroom::report {

struct Span {
  double least = 0;
  double most = 1;
};

// Values at round steps within a span, at most `count` + 1: 1, 2 or 5 times a power of ten, or powers of two for bytes.
std::vector<double> round_ticks(Span span, int count, bool binary);

class Chart {
 public:
  using Points = std::vector<std::pair<double, double>>;
  using Label = std::function<std::string(double)>;

  // `name` is for screen readers. Spans of no width are widened.
  Chart(std::string name, Span x, Span y, bool low = false);

  // The area between two curves with the same x; `fill` is a colour.
  void area(const Points& lower, const Points& upper, const std::string& fill);
  // `style` are attributes of the path: class="ink".
  void line(const Points& points, const std::string& style);
  void level(double y, const std::string& style);
  void mark(double x, double y, const std::string& fill, const std::string& title);
  // A mark that links to `place` of the page ("#plan-3"), as does the strip around it.
  void link(Span strip, double x, double y, const std::string& fill, const std::string& title,
            const std::string& place);
  // An invisible strip from x = begin to end that shows `title` under a pointer.
  void hover(double begin, double end, const std::string& title);

  // The labels of the axes; binary ticks for bytes.
  std::string html(const Label& x, bool x_binary, const Label& y, bool y_binary) const;

 private:
  double across(double x) const { return 1000 * (x - x_.least) / (x_.most - x_.least); }
  double down(double y) const { return 300 * (1 - (y - y_.least) / (y_.most - y_.least)); }
  std::string path(const Points& points, bool begin) const;
  // A line of almost no length with round ends is a disc however the chart is stretched.
  // `passive`: what is below it takes the clicks.
  std::string disc(double x, double y, const std::string& fill, const std::string& title, bool passive) const;
  std::string strip(Span span, const std::string& title) const;

  std::string name_, drawn_;
  Span x_, y_;
  bool low_;
  bool links_ = false;  // it has links, which screen readers must reach
};

}  // namespace headroom::report
