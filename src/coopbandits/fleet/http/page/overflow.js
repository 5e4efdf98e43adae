// Signs that a part of the page holds more than it shows: its edges fade where it can be scrolled.

const LEAST = 6; // pixels; less is no line of text

/** Mark all scrolling parts of the page, and keep the marks up to date. */
export function markOverflow() {
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) mark(target.closest(".scroll"));
  });
  for (const part of document.querySelectorAll(".scroll")) {
    part.addEventListener("scroll", () => mark(part), { passive: true });
    sizes.observe(part);
    for (const child of part.children) sizes.observe(child);
  }
}

function mark(part) {
  const { scrollTop, scrollLeft, clientHeight, clientWidth, scrollHeight, scrollWidth } = part;
  part.classList.toggle("more-below", scrollHeight - clientHeight - scrollTop > LEAST);
  part.classList.toggle("more-right", scrollWidth - clientWidth - scrollLeft > LEAST);
}
