#include "checkpoint/s3_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/random_name.h"
#include "wire/sha256.h"

namespace baton::checkpoint {
namespace {

constexpr std::size_t kBodyBytesMax = std::size_t{1} << 30;  // a manifest of about three million slices

std::string variable(const char* name, const char* otherwise = "") {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::string time_now() {
  const time_t now = ::time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[20];
  strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

std::string host_of(const std::string& endpoint) {
  const std::size_t at = endpoint.find("://");
  return at == std::string::npos ? endpoint : endpoint.substr(at + 3);
}

// What the library calls may not throw, for it is written in C.
struct Hearing {
  S3Answer answer;
  bool lacks_memory = false;
};

template <class Take>
std::size_t taken(Hearing& hearing, std::size_t count, const Take& take) {
  try {
    return take(hearing.answer) ? count : 0;
  } catch (const std::bad_alloc&) {
    hearing.lacks_memory = true;
    return 0;
  }
}

std::size_t take_body(const char* data, std::size_t, std::size_t count, void* into) {
  return taken(*static_cast<Hearing*>(into), count, [&](S3Answer& answer) {
    if (answer.body.size() + count > kBodyBytesMax) return false;
    const ByteView bytes = bytes_of({data, count});
    answer.body.insert(answer.body.end(), bytes.begin(), bytes.end());
    return true;
  });
}

void add_header(S3Answer& answer, std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == '\r' || value.back() == '\n')) value.remove_suffix(1);
  answer.headers[name] = value;
}

std::size_t take_header(const char* data, std::size_t, std::size_t count, void* into) {
  return taken(*static_cast<Hearing*>(into), count, [&](S3Answer& answer) {
    add_header(answer, {data, count});
    return true;
  });
}

struct FreeHeaders {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, FreeHeaders>;

void add(Headers& headers, const std::string& line) {
  curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  (void)headers.release();  // which is its beginning
  headers.reset(longer);
}

struct Reading {
  ByteView left;
};

std::size_t give_body(char* into, std::size_t, std::size_t room, void* from) {
  auto& reading = *static_cast<Reading*>(from);
  const std::size_t count = std::min(room, reading.left.size());
  std::memcpy(into, reading.left.data(), count);
  reading.left = reading.left.subspan(count);
  return count;
}

bool is_passing(int status) { return status >= 500 || status == 429 || status == 409 || status == 408; }

bool is_passing(const Result<S3Answer>& answer) {
  return answer ? is_passing(answer->status) : answer.error().code == Errc::unavailable;
}

// A service may begin to answer with 200 before it knows.
bool has_changed_its_mind(const S3Client::Asked& asked, const Result<S3Answer>& answer) {
  return asked.method == "POST" && answer && answer->status == 200 &&
         answer->text().find("<Error>") != std::string_view::npos;
}

}  // namespace

Result<S3Options> S3Options::from_url(const std::string& url) {
  constexpr std::string_view kScheme = "s3://";
  if (!url.starts_with(kScheme))
    return failure(Errc::invalid_request, "'" + url + "' is not of the form s3://BUCKET/PREFIX");
  const std::string rest = url.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  S3Options options;
  options.bucket = rest.substr(0, slash);
  options.prefix = slash < rest.size() ? rest.substr(slash + 1) : "";
  while (options.prefix.ends_with('/')) options.prefix.pop_back();
  options.credentials = {.access_key = variable("AWS_ACCESS_KEY_ID"),
                         .secret_key = variable("AWS_SECRET_ACCESS_KEY"),
                         .session_token = variable("AWS_SESSION_TOKEN"),
                         .region = variable("AWS_REGION", "us-east-1")};
  options.endpoint =
      variable("AWS_ENDPOINT_URL", ("https://s3." + options.credentials.region + ".amazonaws.com").c_str());
  while (options.endpoint.ends_with('/')) options.endpoint.pop_back();
  if (options.bucket.empty()) return failure(Errc::invalid_request, "'" + url + "' names no bucket");
  if (options.credentials.access_key.empty() || options.credentials.secret_key.empty())
    return failure(Errc::permission_denied, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to use " + url);
  return options;
}

// Those that are not in use keep their connections.
struct S3Client::Handles {
  std::mutex mutex;
  std::vector<CURL*> idle;

  ~Handles() {
    for (CURL* handle : idle) curl_easy_cleanup(handle);
  }
  CURL* take() {
    const std::lock_guard lock(mutex);
    if (idle.empty()) {
      CURL* const made = curl_easy_init();
      if (made == nullptr) throw std::bad_alloc();
      return made;
    }
    CURL* const handle = idle.back();
    idle.pop_back();
    return handle;
  }
  void give_back(CURL* handle) {
    curl_easy_reset(handle);
    const std::lock_guard lock(mutex);
    idle.push_back(handle);
  }
};

S3Client::S3Client(S3Options options) : options_(std::move(options)), handles_(std::make_unique<Handles>()) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)ready;
}
S3Client::~S3Client() = default;

Result<S3Answer> S3Client::ask(const Asked& asked) {
  if (asked.body.size() > kBodyBytesMax)  // a manifest that is there has to be one that can be read
    return failure(Errc::too_large,
                   fmt::format("{} of {}: {} bytes are more than the {} that can be read back", asked.method,
                               asked.key, asked.body.size(), kBodyBytesMax));
  Duration pause = options_.first_pause;
  for (int tried = 1;; ++tried) {
    auto answer = ask_once(asked);
    if (answer) answer->was_repeated = tried > 1;
    if ((!is_passing(answer) && !has_changed_its_mind(asked, answer)) || tried >= options_.tries)
      return answer;
    // Not all ranks at the same moment.
    const auto part = static_cast<std::int64_t>(std::hash<std::string>()(random_name()) % 50 + 50);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause.ms * part / 100));
    pause = std::min(Duration{pause.ms * 2}, options_.longest_pause);
  }
}

Result<S3Answer> S3Client::ask_once(const Asked& asked) {
  S3Request request{.method = asked.method,
                    .host = host_of(options_.endpoint),
                    .path = "/" + options_.bucket,
                    .query = asked.query,
                    .headers = asked.headers};
  if (!asked.key.empty())
    request.path += "/" + (options_.prefix.empty() ? asked.key : options_.prefix + "/" + asked.key);
  wire::Sha256 sum;
  sum.add(text_of(asked.body));
  sign(request, sum.hex(), time_now(), options_.credentials);

  std::string url = options_.endpoint + escaped(request.path, true);
  if (!request.query.empty()) url += "?" + query_text(request.query);
  Headers headers;
  for (const auto& [name, value] : request.headers) add(headers, name + ": " + value);
  add(headers, "Expect:");

  Hearing hearing;
  Reading reading{asked.body};
  char problem[CURL_ERROR_SIZE] = "";
  CURL* const handle = handles_->take();
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, asked.method.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
  // Of a transfer that moves nobody knows how long it takes; one that stands still is over.
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME,
                   static_cast<long>(std::max<std::int64_t>(options_.timeout.ms / 1000, 1)));
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, problem);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &hearing);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &hearing);
  if (asked.method == "HEAD") curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  if (asked.method == "PUT" || asked.method == "POST") {
    curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(handle, CURLOPT_READFUNCTION, give_body);
    curl_easy_setopt(handle, CURLOPT_READDATA, &reading);
    curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(asked.body.size()));
  }
  const CURLcode done = curl_easy_perform(handle);
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  handles_->give_back(handle);
  if (hearing.lacks_memory) throw std::bad_alloc();
  if (done == CURLE_WRITE_ERROR)
    return failure(Errc::too_large, fmt::format("{} of {}: the answer has more than {} bytes", asked.method,
                                                asked.key, kBodyBytesMax));
  if (done != CURLE_OK) {
    return failure(Errc::unavailable, fmt::format("{} at {}: {}", asked.method, options_.endpoint,
                                                  *problem != '\0' ? problem : curl_easy_strerror(done)));
  }
  hearing.answer.status = static_cast<int>(status);
  return std::move(hearing.answer);
}

std::vector<std::string> xml_texts(std::string_view xml, std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}};
  const std::string begin = fmt::format("<{}>", name);
  const std::string end = fmt::format("</{}>", name);
  std::vector<std::string> texts;
  for (std::size_t at = xml.find(begin); at != std::string_view::npos; at = xml.find(begin, at)) {
    at += begin.size();
    const std::size_t until = xml.find(end, at);
    if (until == std::string_view::npos) break;
    std::string text(xml.substr(at, until - at));
    for (const auto& [entity, letter] : kEntities) {
      for (std::size_t found = text.find(entity); found != std::string::npos;
           found = text.find(entity, found + 1))
        text.replace(found, entity.size(), letter);
    }
    texts.push_back(std::move(text));
    at = until;
  }
  return texts;
}

Error s3_error(const S3Answer& answer, const std::string& what) {
  const Errc code = answer.status == 404                           ? Errc::not_found
                    : answer.status == 403 || answer.status == 401 ? Errc::permission_denied
                    : answer.status == 412                         ? Errc::conflict
                    : answer.status == 507                         ? Errc::no_space
                    : is_passing(answer.status)                    ? Errc::unavailable
                                                                   : Errc::io_failed;
  const auto codes = xml_texts(answer.text(), "Code");
  const auto messages = xml_texts(answer.text(), "Message");
  return {
      code,
      fmt::format("{}: the service answered {}{}{}", what, answer.status,
                  codes.empty() ? "" : " " + codes.front(), messages.empty() ? "" : ": " + messages.front()),
      {}};
}

}  // namespace baton::checkpoint
