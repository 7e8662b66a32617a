//! The section on topics. The section contains a map of the topics and bars for the words of each topic.

use crate::figure::{Anchor, Axis, Scene, Stroke, Tint, text_width};
use crate::model::{MappedTopic, TopicMap, TopicWord};
use crate::page::Page;
use crate::text;

const MAP: (f64, f64) = (520.0, 430.0);
/// The radius, in pixels, of a topic that contains all tokens.
const RADIUS: f64 = 150.0;

/// The width of the picture that shows the words, and the height of each of its rows, in pixels.
const BARS: (f64, f64) = (520.0, 19.0);

pub(crate) fn put(page: &mut Page, map: &TopicMap) {
    if map.topics.is_empty() {
        return;
    }
    page.heading(
        "Map of topics",
        "Topics that are near each other use the same words; the area of a disc is the topic's share of all \
         tokens. The bars of a topic show how often its most characteristic words occur in it (dark) and in \
         all documents (light).",
    );
    page.push(
        "<div class=\"tools\" role=\"group\" aria-label=\"Topic whose words are shown\" hidden>",
    );
    let spelled = || map.topics.iter().filter(|topic| !topic.words.is_empty());
    for topic in spelled() {
        page.put(format_args!(
            "<button type=\"button\" data-choose=\"topic {0}\">{0}</button>",
            topic.number
        ));
    }
    page.push("</div>\n<div class=\"pair\">");
    let shown = spelled().count();
    let caption = match map.topics.len() - shown {
        0 => String::new(),
        hidden => format!("The words of the {hidden} smallest are in fit.json."),
    };
    page.scene("", "Map of the topics", &discs(&map.topics), &caption);
    page.push("<div>");
    for topic in spelled() {
        let heading = format!(
            "Topic {}: {} % of the tokens",
            topic.number,
            text::fixed(100.0 * topic.share, 1)
        );
        page.chosen_scene(("topic", topic.number), &heading, &bars(topic));
    }
    page.push("</div></div>\n");
}

fn discs(topics: &[MappedTopic]) -> Scene {
    let (width, height) = MAP;
    let radius = |topic: &MappedTopic| {
        let share = if topic.share.is_finite() {
            topic.share.clamp(0.0, 1.0)
        } else {
            0.0
        };
        (RADIUS * share.sqrt()).max(4.0)
    };
    let room = topics.iter().map(radius).fold(0.0, f64::max) + 6.0;
    let axis = Axis::default();
    let x = axis.scale(topics.iter().map(|t| t.position.0), room, width - room, 0.0);
    let y = axis.scale(
        topics.iter().map(|t| t.position.1),
        height - room,
        room,
        0.0,
    );
    let mut scene = Scene::new(width, height);
    let shown = |topic: &&MappedTopic| axis.takes(topic.position.0) && axis.takes(topic.position.1);
    // Large circles are drawn first, so that small circles are on top of them.
    for topic in topics.iter().filter(shown) {
        let at = (x.at(topic.position.0), y.at(topic.position.1));
        scene.disc(at, radius(topic), Tint::Series(0).faint(0.3));
        let label = topic.number.to_string();
        scene.text((at.0, at.1 + 4.0), 11.5, Anchor::Middle, Tint::Ink, &label);
        let words: Vec<&str> = topic
            .words
            .iter()
            .take(6)
            .map(|w| w.word.as_str())
            .collect();
        let tip = format!(
            "topic {}, {} %: {}",
            topic.number,
            text::fixed(100.0 * topic.share, 1),
            words.join(" ")
        );
        // The events of the pointer are received by a square inside the circle.
        let side = 1.4 * radius(topic);
        let corner = (at.0 - 0.5 * side, at.1 - 0.5 * side);
        scene.titled_rectangle(corner, (side, side), Tint::Ink.faint(0.0), &tip);
    }
    scene
}

fn bars(topic: &MappedTopic) -> Scene {
    let (width, pitch) = BARS;
    let labels: Vec<String> = topic
        .words
        .iter()
        .map(|w| text::shorten(&w.word, 24))
        .collect();
    let longest = labels
        .iter()
        .map(|label| text_width(label, 12.0))
        .fold(0.0, f64::max);
    let left = 18.0 + longest;
    let largest = topic
        .words
        .iter()
        .map(|w| w.overall)
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut scene = Scene::new(width, 8.0 + pitch * labels.len() as f64);
    for (
        row,
        (
            TopicWord {
                word,
                within,
                overall,
            },
            label,
        ),
    ) in topic.words.iter().zip(&labels).enumerate()
    {
        let top = 4.0 + pitch * row as f64;
        let length = |share: f64| {
            let part = share / largest;
            if part.is_finite() {
                part.clamp(0.0, 1.0) * (width - left - 10.0)
            } else {
                0.0
            }
        };
        let bar = |scene: &mut Scene, share: f64, opacity: f64| {
            let size = (length(share), pitch - 5.0);
            scene.rectangle((left, top), size, Tint::Series(0).faint(opacity));
        };
        bar(&mut scene, *overall, 0.28);
        bar(&mut scene, *within, 0.9);
        scene.text(
            (left - 8.0, top + 11.5),
            12.0,
            Anchor::End,
            Tint::Ink,
            label,
        );
        let tip = format!(
            "{word}: {} % of its uses are in this topic",
            text::fixed(100.0 * within / overall, 0)
        );
        scene.titled_rectangle((0.0, top - 2.0), (width, pitch), Tint::Ink.faint(0.0), &tip);
    }
    let line = vec![(left, 2.0), (left, 2.0 + pitch * labels.len() as f64)];
    scene.line(line, Stroke::solid(Tint::Soft, 1.0));
    scene
}
