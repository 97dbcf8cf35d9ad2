import pytest

from course_lib.visuals.explorers import KeysStayInside

pytestmark = pytest.mark.browser

CONTROLS = """
<div class="jupyter-widgets"><label>width</label><div class="noUi-handle" tabindex="0"></div></div>
<div class="jupyter-widgets"><label for="s">kind</label><select id="s"><option>a</select></div>
<div class="jupyter-widgets"><input type="radio"></div>
<p><input type="text"></p>
"""


@pytest.fixture
def page(browser):
    page = browser.new_page()
    page.set_content(CONTROLS)
    module = KeysStayInside._esm
    module = module if isinstance(module, str) else str(module)
    page.add_script_tag(type="module", content=module.replace("export default", "window.keys ="))
    page.wait_for_function("window.keys")
    yield page
    page.close()


def marked(page, selector):
    page.locator(selector).focus()
    return page.locator(selector).get_attribute("data-lm-suppress-shortcuts") is not None


@pytest.mark.parametrize("control", [".noUi-handle", "select", "input[type=radio]"])
def test_a_control_is_marked_as_it_gains_focus(page, control):
    assert not marked(page, control)
    page.evaluate("document.activeElement.blur()")
    page.evaluate("keys.render({ el: document.createElement('div') })")
    assert marked(page, control)


def test_what_is_no_widget_is_left_alone(page):
    page.evaluate("keys.render({ el: document.createElement('div') })")
    assert not marked(page, "input[type=text]")


def test_the_handle_of_a_slider_gets_its_label_as_a_name(page):
    page.evaluate("keys.render({ el: document.createElement('div') })")
    page.locator(".noUi-handle").focus()
    assert page.locator(".noUi-handle").get_attribute("aria-label") == "width"


def test_a_second_explorer_adds_no_second_listener(page):
    page.evaluate(
        """() => {
          window.added = 0;
          const add = document.addEventListener;
          document.addEventListener = (...all) => { added += 1; add.apply(document, all); };
          for (const _ of [1, 2]) keys.render({ el: document.createElement('div') });
        }"""
    )
    assert page.evaluate("added") == 1
